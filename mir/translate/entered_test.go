package translate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"mirador/omis"
)

// TestPlacesOfARegion checks that a region is measured at all entries and all exits that its Locator
// returns. An entry may differ from the region's first address.
func TestPlacesOfARegion(t *testing.T) {
	targets, _ := oneProcess(1)
	m := &targets.Processes[0].Modules[0]
	m.Bias = 0x1000
	where := &located{entries: []uint64{0x18, 0x1c}, exits: []uint64{0x20, 0x28}}
	m.Locator = where
	r := &region{name: "work", copies: []regionCopy{{"p_1", m, m.Units.ByID("f.1")}}, entry: true, exit: true}
	places, err := r.places([]omis.Token{"p_1"}, true)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range places {
		got = append(got, fmt.Sprintf("%#x %t", p.Addr, p.Exit))
	}
	if want := "0x1018 false, 0x101c false, 0x1020 true, 0x1028 true"; strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
	where.err = errors.New("its stack check is unknown")
	if _, err := r.places([]omis.Token{"p_1"}, false); err == nil || !strings.Contains(err.Error(), where.err.Error()) {
		t.Errorf("a region with an unknown beginning: %v", err)
	}
}
