"""Judges that one may quote: rubrics, people's ratings, estimates, plans, audits and drift."""
