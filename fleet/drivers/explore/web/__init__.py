"""The explorers of pages: by HTTP, and in a browser."""
