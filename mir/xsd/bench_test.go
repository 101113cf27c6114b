package xsd_test

import (
	"fmt"
	"testing"

	"mirador/mir"
	"mirador/schemas"
)

// request returns a VALUE request of 1 KiB.
func request() []byte {
	document := "<ctrlreq action=\"VALUE\">\n"
	for i := 1; len(document) < 1024-len("  <probe id=\"probe_00\"/>\n</ctrlreq>\n"); i++ {
		document += fmt.Sprintf("  <probe id=\"probe_%02d\"/>\n", i)
	}
	return []byte(document + "</ctrlreq>\n")
}

func BenchmarkScan(b *testing.B) {
	document := request()
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := mir.Scan(document, mir.RequestLimits()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	schema := parsed(b, schemas.MIR())
	tree, err := mir.Scan(request(), mir.RequestLimits())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := schema.Validate(tree); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecode measures all steps: scan, validation, decoding.
func BenchmarkDecode(b *testing.B) {
	d := mir.Decoder{Limits: mir.RequestLimits(), Validator: parsed(b, schemas.MIR())}
	document := request()
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.DecodeRequest(document); err != nil {
			b.Fatal(err)
		}
	}
}
