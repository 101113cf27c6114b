package probes_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mirador/mir"
	"mirador/probes/deliver"
)

// TestManyProbesDeliver checks the numbers, values and times of the documents of many probes
// with different intervals, some of which are removed.
func TestManyProbesDeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		p := h.node.Add(1, []string{"mmul"}, 1)
		a := h.attach("", 1)
		const many = 100
		streams := make([]<-chan deliver.Event, many)
		every := func(i int) int { return 1000 + 500*(i%3) }
		for i := range many {
			h.want(a, fmt.Sprintf(`<instrreq activated="true" flush="true"><codeRegion from="f.1a2b"/><metric name="COUNT"/><measuring delivery="%d"/><process id="p_1"/></instrreq>`, every(i)),
				fmt.Sprintf(`<probe id="probe-%d"/>`, i+1))
			var err error
			if streams[i], _, err = h.registry.Subscribe(fmt.Sprint("probe-", i+1), 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(11*time.Second - many*time.Millisecond)
		synctest.Wait() // until what is due now is delivered
		execute(p, 1)
		for i := range many {
			if got, want := len(streams[i]), 11_000/every(i); got < want-1 || got > want {
				t.Errorf("probe %d has delivered %d documents, want %d", i+1, got, want)
			}
		}
		var half []string
		for i := 0; i < many; i += 2 {
			half = append(half, fmt.Sprintf(`<probe id="probe-%d"/>`, i+1))
		}
		if got := h.post(a, `<ctrlreq action="REMOVE">`+strings.Join(half, "")+`</ctrlreq>`); strings.Contains(got, "errors") {
			t.Fatal(got)
		}
		time.Sleep(6 * time.Second)
		for i := range many {
			var last mir.Document
			n := 0
			for len(streams[i]) > 0 {
				last = (<-streams[i]).Document
				n++
			}
			want := 17_000 / every(i)
			if i%2 == 0 {
				want = 11_000/every(i) + 1 // the last value, at REMOVE
			}
			if got := line(t, last); got != `<measurement value="1"/>` || n < want-1 || n > want {
				t.Errorf("probe %d has delivered %d documents, the last one %s; want %d", i+1, n, got, want)
			}
		}
		p.End()
		for i := 1; i < many; i += 2 {
			if got := line(t, (<-streams[i]).Document); got != `<measurement value="1"/>` {
				t.Errorf("at the end probe %d has delivered %s", i+1, got)
			}
			if _, open := <-streams[i]; open {
				t.Errorf("the stream of probe %d is open", i+1)
			}
		}
	})
}
