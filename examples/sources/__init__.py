"""What the examples search in, and the models that turn it into vectors."""
