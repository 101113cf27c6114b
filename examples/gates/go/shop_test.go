package shop

import "testing"

func BenchmarkPrice(b *testing.B) {
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		Price(1_000_000 + i%1_000_000)
	}
}
