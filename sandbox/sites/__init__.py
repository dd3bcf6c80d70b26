"""A site with accounts: throwaway visitors, their sessions and forms."""
