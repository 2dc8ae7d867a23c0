"""Files of official releases that several rooms read: where they lie, what stands in them."""
