// Package syntax is the language of requests and replies (OMIS 7.2.1, 7.3.2): it
// scans, parses and prints requests, and writes and reads replies in OMIS
// notation.
//
// It knows the form of a request alone; which services exist and what they take
// stands in package service. The engine, the gateway and the command line import
// it; it imports the vocabulary in package omis. Everything is a pure function of
// its arguments and may be called from any goroutine.
package syntax
