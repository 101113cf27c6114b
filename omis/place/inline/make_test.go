//go:build linux && amd64

package inline

import (
	"testing"

	"mirador/omis/node"
	"mirador/omis/program"
)

func BenchmarkMake(b *testing.B) {
	sh, _ := shapeFor(1 << 38)
	m := &compiler{shape: sh, tid: 720, base: 0x7f0000000000, steps: []step{
		{do: program.OpAdd, value: 1, row: 64, lost: 0x7f0000000000},
		{do: program.OpStart, row: 1 << 30, open: 4096, lost: 0x7f0000000000},
	}}
	var n int
	for b.Loop() {
		code, err := m.bytes(node.Spot{Code: 0x400000, Switch: 0x500000, Entry: true})
		if err != nil {
			b.Fatal(err)
		}
		n = len(code)
	}
	b.ReportMetric(float64(n), "bytes")
}
