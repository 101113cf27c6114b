package schemas_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"mirador/schemas"
)

// elements returns the start tags of an XML file.
func elements(t *testing.T, source []byte) []xml.StartElement {
	t.Helper()
	var all []xml.StartElement
	decoder := xml.NewDecoder(bytes.NewReader(source))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok {
			all = append(all, start.Copy())
		}
	}
}

// TestNothingIsFetched checks that schemas have no imports, which libxml2 fetches over the
// network, and no patterns, for which it backtracks exponentially.
func TestNothingIsFetched(t *testing.T) {
	for name, source := range map[string][]byte{"mir": schemas.MIR(), "sir": schemas.SIR(), "omis": schemas.OMIS(), "gateway": schemas.Gateway()} {
		for _, e := range elements(t, source) {
			switch e.Name.Local {
			case "import", "include", "redefine", "pattern":
				t.Errorf("%s.xsd has an xs:%s", name, e.Name.Local)
			}
		}
	}
}

func TestCatalogNamesFiles(t *testing.T) {
	catalog, err := fs.ReadFile(schemas.Files(), "catalog.xml")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, e := range elements(t, catalog) {
		for _, a := range e.Attr {
			if a.Name.Local == "uri" {
				named[a.Value] = true
			}
		}
	}
	files, err := fs.Glob(schemas.Files(), "*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if file != "catalog.xml" && !named[file] {
			t.Errorf("the catalog does not name %s", file)
		}
		delete(named, file)
	}
	for file := range named {
		t.Errorf("the catalog names %s, which does not exist", file)
	}
}

// TestGrammarsAgree checks that the DTDs and the schemas declare the same elements.
func TestGrammarsAgree(t *testing.T) {
	for name, source := range map[string][]byte{"mir": schemas.MIR(), "sir": schemas.SIR()} {
		dtd, err := fs.ReadFile(schemas.Files(), name+".dtd")
		if err != nil {
			t.Fatal(err)
		}
		declared := map[string]bool{}
		for _, e := range elements(t, source) {
			for _, a := range e.Attr {
				if e.Name.Local == "element" && a.Name.Local == "name" {
					declared[a.Value] = true
				}
			}
		}
		for line := range strings.Lines(string(dtd)) {
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[0] != "<!ELEMENT" || strings.Contains(fields[1], ":") {
				continue
			}
			if !declared[fields[1]] {
				t.Errorf("%s.xsd lacks the element %s of its DTD", name, fields[1])
			}
			delete(declared, fields[1])
		}
		for element := range declared {
			t.Errorf("%s.dtd lacks the element %s of its schema", name, element)
		}
	}
}
