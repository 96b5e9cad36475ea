"""What is sent when."""
