package binary

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mirador/sir"
)

// readelfMarkers is the oracle for markers: their addresses by their names.
func readelfMarkers(t *testing.T, path string) map[string][]uint64 {
	t.Helper()
	markers := make(map[string][]uint64)
	note := regexp.MustCompile(`Provider: (\S+)\s+Name: (\S+)\s+Location: (\S+),`)
	for _, n := range note.FindAllStringSubmatch(run(t, "readelf", "-nW", path), -1) {
		at, err := strconv.ParseUint(n[3], 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		markers[n[1]+":"+n[2]] = append(markers[n[1]+":"+n[2]], at)
	}
	for name := range markers {
		slices.Sort(markers[name])
	}
	return markers
}

func TestMarkersAgreeWithReadelf(t *testing.T) {
	program := filepath.Join(t.TempDir(), "marked")
	run(t, "gcc", "-O2", "-o", program, "testdata/marked.c")
	library := strings.TrimSpace(run(t, "g++", "-print-file-name=libstdc++.so.6"))
	for path, least := range map[string]int{program: 5, library: 3} {
		want := readelfMarkers(t, path)
		if len(want) < least {
			t.Fatalf("%s has only the markers %v", path, want)
		}
		got := make(map[string][]uint64)
		for _, m := range open(t, path).Functions().Markers {
			if m.ID != NameOf(path)+":"+m.Name || m.Kind != sir.Marker {
				t.Errorf("the marker is %+v", m)
			}
			got[m.Name] = m.Code.Entries
		}
		if !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s has the markers %#x, readelf says %#x", path, got, want)
		}
	}
	im := open(t, program)
	if at, err := im.Entries(im.Units().ByID("marked:marked:end")); err != nil || len(at) < 1 {
		t.Errorf("the marker end is at %#x, %v", at, err)
	}
	if _, err := im.Entries(im.Units().ByID("marked:marked:seldom")); err == nil || !strings.Contains(err.Error(), "only while a counter") {
		t.Errorf("a marker with a semaphore: %v", err)
	}
}
