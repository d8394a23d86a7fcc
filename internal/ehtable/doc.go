// Package ehtable reads what the tables of exception handling are made of: pointers in the encodings that they name
// (DW_EH_PE; LSB Core 5.0 §10.5.1), and the call sites of language-specific data (Itanium C++ ABI, Exception Handling
// Tables). It trusts no byte of them.
package ehtable
