// Package translate translates MIR requests to OMIS requests, and OMIS replies to the answers
// of MIR.
//
// It is pure: no input or output, no clock, no goroutines, no state. Targets describes the
// running application, and Handles has the tokens that the monitor assigned. So every
// translation can be written down and tested as a case (examples/cases).
//
// It imports mir, sir and omis; probes and http import it.
package translate
