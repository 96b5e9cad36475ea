"""What every engine is doing, from scrapes and boot logs."""
