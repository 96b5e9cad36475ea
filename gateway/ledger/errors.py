"""Errors of the ledger.

LedgerError
├── JournalInUse        another process writes to the same journal folder: refuse to start
├── JournalFull         a required record could not be made durable: refuse the request
├── StoreUnavailable    the database cannot take rows now: keep them in the journal, try again
└── StoreMisconfigured  the database will not work as configured: refuse to start
"""


class LedgerError(Exception):
    """Anything that keeps records from becoming durable."""


class JournalInUse(LedgerError):
    """Another process holds the journal folder."""


class JournalFull(LedgerError):
    """The journal's disk takes no more, and the record may not be kept in memory only."""


class StoreUnavailable(LedgerError):
    """The database is locked, full, read-only or away; what was to be written is unchanged and may be written
    later.
    """


class StoreMisconfigured(LedgerError):
    """The URL, its driver or the version of the database's tables does not fit; trying again does not
    help.
    """
