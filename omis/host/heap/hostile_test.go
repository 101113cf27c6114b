//go:build linux

package heap

import (
	"encoding/binary"
	"os"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// TestHostileTables checks that whatever an arena contains, reading it ends, with a result
// that is no more than an address can count. The arena is in this process.
func TestHostileTables(t *testing.T) {
	m := memory(os.Getpid())
	data := make([]byte, 1<<16)
	base := uint64(uintptr(unsafe.Pointer(&data[0])))
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.OneOf(
			rapid.Uint64(), rapid.Just(uint64(0)), rapid.Just(uint64(33)),
			rapid.Map(rapid.Uint64Range(0, 1<<12), func(n uint64) uint64 { return base + 16*n }),
		), 64, 64).Draw(t, "words")
		for i := range len(data) / 8 {
			binary.LittleEndian.PutUint64(data[8*i:], words[i*i%len(words)])
		}
		if rapid.Bool().Draw(t, "bins") {
			for bin := range uint64(bins) {
				at := 112 + bin*binSize
				binary.LittleEndian.PutUint64(data[at:], base+at-binSize)
				binary.LittleEndian.PutUint64(data[at+8:], base+at-binSize)
			}
			for range rapid.IntRange(0, 40).Draw(t, "full") {
				at := 112 + binSize*rapid.Uint64Range(0, bins-2).Draw(t, "bin")
				binary.LittleEndian.PutUint64(data[at:], base+16*rapid.Uint64Range(0, 1<<12-1).Draw(t, "chunk"))
			}
		}
		where := &tables{main: base, head: 112, mapped: base + 8*rapid.Uint64Range(0, 1<<10).Draw(t, "mapped")}
		if got, ok := where.used(m); ok && (got < 0 || got >= 1<<47) {
			t.Fatalf("%d bytes", got)
		}
		m.search(data, base, words[0])
	})
}
