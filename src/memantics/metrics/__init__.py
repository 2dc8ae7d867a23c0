"""Pure functions from gold and predicted values to figures."""
