"""The learners, as scikit-learn estimators; `condmeta` lists the public ones."""
