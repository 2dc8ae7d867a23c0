"""Statistics and evaluation metrics, as pure functions of gold and predicted values."""
