// Command siege tests a gateway with very many requests, and with malformed ones.
//
// First, a user without privileges sets thousands of probes on its own program and sends many
// requests about them. Meanwhile siege requests GET /metrics repeatedly: its latency and the
// gateway's memory must stay within limits, each count must be right, and in the end the program's
// code must be unchanged. Then siege sends mutated MIR documents and mutated OMIS requests about
// live programs: the gateway must answer each of them, never with status 500, its memory must stay
// within limits, and the programs must live and compute correct results. Half of the documents are generated
// from schemas/mir.xsd, and half of these are not changed further.
//
//	siege [-probes N] [-requests N] [-documents N] [-omis N] [-seed N] [-mirador FILE]
//
// Root must start it, because it acts as two users. No package imports it. Each phase has several goroutines that send requests and share only
// counters, and a scraper.
package main
