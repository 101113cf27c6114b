package sir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
)

// TestLater writes regions that are made while the document is written. The document is that of all regions.
func TestLater(t *testing.T) {
	for _, n := range []int{0, 1, unitsPerBatch, 1000} {
		p := Program{Path: "/bin/p", Markers: []Region{{ID: "p:m", Kind: Marker}}}
		for i := range n {
			p.Regions = append(p.Regions, Region{ID: fmt.Sprintf("p:f%d", i), Kind: Function, Entry: uint64(i)})
		}
		inside := func(r *Region) error {
			r.Regions = []Region{{ID: r.ID + "/loop1", Kind: Loop, Code: &Code{Uncounted: "it is never left"}}}
			return nil
		}
		later, whole := p, p
		later.Inside = inside
		whole.Regions = append([]Region(nil), p.Regions...)
		for i := range whole.Regions {
			_ = inside(&whole.Regions[i])
		}
		var got, want bytes.Buffer
		if err := errors.Join(Encode(&got, &Structure{Programs: []Program{later}}), Encode(&want, &Structure{Programs: []Program{whole}})); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() {
			t.Errorf("%d units: %.300s\nwant %.300s", n, got.String(), want.String())
		}
		if n > 0 && p.Regions[0].Regions != nil {
			t.Error("the structure was changed")
		}
	}
}

// TestLaterEnds stops at the first error, whether the regions or the output have it.
func TestLaterEnds(t *testing.T) {
	wrong := errors.New("wrong")
	p := Program{Regions: make([]Region, 10_000)}
	p.Inside = func(*Region) error { return wrong }
	if err := Encode(io.Discard, &Structure{Programs: []Program{p}}); !errors.Is(err, wrong) {
		t.Error(err)
	}
	p.Inside = func(*Region) error { return nil }
	if err := Encode(broken{wrong}, &Structure{Programs: []Program{p}}); !errors.Is(err, wrong) {
		t.Error(err)
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }
