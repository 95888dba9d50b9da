"""What ``bothost bench`` measures."""
