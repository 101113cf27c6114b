// Command siege sends a gateway more than a tool ever would, and worse.
//
// First a user without privileges sets thousands of probes on a program of its own and sends
// many requests about them, while GET /metrics is asked for all the time: its latency and the
// gateway's memory stay bounded, each count is right, and the program's code is what it was in
// the end. Then mutated MIR documents and mutated OMIS requests follow, about live programs:
// the gateway answers each of them, never with status 500, its memory stays bounded, and the
// programs live and compute what they should.
//
//	siege [-probes N] [-requests N] [-documents N] [-omis N] [-seed N] [-mirador FILE]
//
// It must be started by root, since it is two users. It imports nothing of
// the house, and nothing imports it. Goroutines: of each phase some callers, which share nothing but
// counters, and the scraper.
package main
