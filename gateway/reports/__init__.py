"""Reports: rows from the ledger, one Report value, several renderers."""
