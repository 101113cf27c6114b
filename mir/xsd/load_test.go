package xsd_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"mirador/mir"
	"mirador/schemas"
)

// TestMemoryStaysFlat checks that neither valid nor invalid documents leak memory.
func TestMemoryStaysFlat(t *testing.T) {
	schema := parsed(t, schemas.MIR())
	d := mir.Decoder{Limits: mir.RequestLimits(), Validator: schema}
	round := func(n int) {
		for i := range n {
			// New names each time would accumulate in a dictionary that is kept.
			documents := []string{
				fmt.Sprintf(`<ctrlreq action="VALUE"><probe id="probe_%d"/></ctrlreq>`, i),
				fmt.Sprintf(`<instrreq flush="%d"><x%d y%d="z"/><metric/></instrreq>`, i, i, i),
				fmt.Sprintf(`<instrreq xmlns:g="urn:%d"><g:x%d g:y%d="z"/><metric name="%s"/></instrreq>`, i, i, i, strings.Repeat("m", 2000)),
			}
			for _, document := range documents {
				_, err := d.DecodeRequest([]byte(document))
				var refused *mir.Error
				if err != nil && !errors.As(err, &refused) {
					t.Fatal(err)
				}
			}
		}
	}
	round(1000)
	before := resident(t)
	round(7000)
	const allowed = 4 << 20
	if after := resident(t); after > before+allowed {
		t.Errorf("21,000 validations took %d KiB", (after-before)>>10)
	}
}

// resident returns the resident memory of the process in bytes, after a garbage collection.
func resident(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// TestManyAtOnce checks that errors never appear in the answer to another request, and that
// many requests do not create many threads.
func TestManyAtOnce(t *testing.T) {
	schema := parsed(t, schemas.MIR())
	const requests = 256
	var group sync.WaitGroup
	for i := range requests {
		group.Go(func() {
			for j := range 20 {
				want := ""
				document := fmt.Sprintf(`<ctrlreq action="VALUE"><probe id="p_%d_%d"/></ctrlreq>`, i, j)
				if (i+j)%2 == 0 {
					value := fmt.Sprintf("v_%d_%d", i, j)
					document = fmt.Sprintf(`<ctrlreq flush="%s"/>`, value)
					want = fmt.Sprintf(`line 1, column 10: flush is "%s"; true or false was expected`, value)
				}
				got := ""
				if err := validate(t, schema, document); err != nil {
					got = err.Error()
				}
				if got != want {
					t.Errorf("%s: got %q, want %q", document, got, want)
				}
			}
		})
	}
	group.Wait()
	if threads, most := threads(t), 8*runtime.GOMAXPROCS(0)+16; threads > most {
		t.Errorf("%d threads, at most %d expected", threads, most)
	}
}

func threads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(tasks)
}
