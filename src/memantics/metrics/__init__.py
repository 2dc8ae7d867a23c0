"""Every statistic of Memantics as a pure function from gold and predicted values."""
