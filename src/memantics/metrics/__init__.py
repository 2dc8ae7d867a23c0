"""Statistics of Memantics as pure functions of gold and predicted values."""
