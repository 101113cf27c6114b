// Package translate turns MIR requests into OMIS requests, and OMIS replies
// into what MIR answers.
//
// It is pure: no input or output, no clock, no goroutines, no state. What it
// needs to know about the running application stands in Targets; tokens that
// the monitor gives out come back into it as Handles. So every translation can
// be written down as a case (examples/cases) and played again.
//
// It imports mir, sir and omis; probes and http import it.
package translate
