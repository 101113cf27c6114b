package xsd_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/lestrrat-go/libxml2/parser"

	"mirador/mir"
	"mirador/schemas"
)

// FuzzScanAgrees checks that documents that the scanner accepts are well-formed for libxml2,
// and that the validator can process them.
func FuzzScanAgrees(f *testing.F) {
	files, err := filepath.Glob("../testdata/documents/*.xml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		document, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(document)
	}
	schema := parsed(f, schemas.MIR())
	quiet := parser.New(parser.XMLParseNoNet, parser.XMLParseNoError, parser.XMLParseNoWarning)
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := mir.Scan(data, mir.RequestLimits())
		if err != nil {
			return
		}
		document, err := quiet.ParseString(string(data))
		if err != nil {
			t.Fatalf("libxml2 refuses %q: %v", data, err)
		}
		document.Free()
		var refused *mir.Error
		if err := schema.Validate(tree); err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
	})
}
