package engine_test

import (
	"flag"
	"os"
	"testing"

	"mirador/omis/ext/pa"
)

var update = flag.Bool("update", false, "write the generated reference page anew")

const referencePage = "../../doc/omis-services.md"

func TestReferencePageIsCurrent(t *testing.T) {
	b := start(t, pa.New())
	want := b.engine.Catalog().Reference()
	if *update {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the table says: run go generate ./omis/engine", referencePage)
	}
}
