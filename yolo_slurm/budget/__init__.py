"""Who may grant what: in this form, whoever may open the ledger."""
