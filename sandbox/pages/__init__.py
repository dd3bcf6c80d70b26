"""Pages and documents of a site: what is asked, and what their markup says."""
