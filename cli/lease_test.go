package cli

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// TestLease checks that what a vanished tool has stopped continues after the lease, and that the
// tool is told when it returns. A tool with a connected stream keeps its objects stopped.
func TestLease(t *testing.T) {
	t.Parallel()
	const lease = 500 * time.Millisecond
	s := startServe(t, os.Geteuid(), "--lease", lease.String())
	_, w := startWitness(t)
	stopped := func() bool {
		state := status(t, w.pid, w.spinner, "State")
		return state == "t (tracing stop)" || state == "T (stopped)"
	}
	present := s.listen(t, "present")
	for _, request := range []string{": thread_stop([])", ": thread_suspend([])"} {
		present.ask(t, ": proc_attach3([],"+fmt.Sprint(w.pid)+`,"")`)
		present.ask(t, request)
		time.Sleep(3 * lease)
		if !stopped() {
			t.Fatalf("%s of a tool that reads its replies has ended", request)
		}
		present.ask(t, ": proc_detach([])")
		eventually(t, "it runs when the tool has detached", func() bool { return !stopped() })

		absent := &tool{s, "absent", &gathered{}}
		absent.ask(t, ": proc_attach3([],"+fmt.Sprint(w.pid)+`,"")`)
		absent.ask(t, request)
		eventually(t, "it runs after the lease", func() bool { return !stopped() })
	}
	// The tool connects its stream again.
	back := s.listen(t, "absent")
	back.await(t, 2, `0 OMIS_UNSPECIFIED_ERROR\(1000\) \[p_\d+\] "objects that this tool had stopped or suspended continue`)
}
