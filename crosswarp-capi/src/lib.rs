//! OpenSHMEM 1.5 for C and C++.
