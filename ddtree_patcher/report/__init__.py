"""One result model, drawn for people and for machines."""
