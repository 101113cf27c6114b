// Package syntax implements the language of requests and replies (OMIS 7.2.1, 7.3.2): it
// scans, parses and prints requests, and writes and reads replies in OMIS notation.
//
// It knows only the form of a request; package service knows the services and their
// parameters. The engine, the gateway and the command line import it; it imports package omis.
// All functions are pure and may be called by several goroutines.
package syntax
