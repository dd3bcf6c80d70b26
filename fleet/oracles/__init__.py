"""What holds of every answer of a healthy platform, whatever it was asked, and whoever asked."""
