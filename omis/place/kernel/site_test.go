//go:build linux && amd64

package kernel

import "testing"

// Which instructions the kernel emulates (Linux 6.18) was measured: others take ten times as long.
func TestMeasure(t *testing.T) {
	for _, try := range []struct {
		what, code string
		length     int
		quick      bool
	}{
		{"push %rbp", "\x55", 1, true},
		{"push %r12", "\x41\x54", 2, true},
		{"push $1", "\x6a\x01", 2, false},
		{"nop", "\x90", 1, true},
		{"xchg %ax,%ax", "\x66\x90", 2, true},
		{"nopl (%rax)", "\x0f\x1f\x00", 3, true},
		{"nopl 0(%rax,%rax)", "\x0f\x1f\x44\x00\x00", 5, true},
		{"nopw 0(%rax,%rax)", "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00", 9, false},
		{"endbr64", "\xf3\x0f\x1e\xfa", 4, false},
		{"jmp", "\xeb\x00", 2, true},
		{"je", "\x74\x00", 2, true},
		{"call", "\xe8\x00\x00\x00\x00", 5, true},
		{"jmp *%rax", "\xff\xe0", 2, false},
		{"ret", "\xc3", 1, false},
		{"leave", "\xc9", 1, false},
		{"pop %rbp", "\x5d", 1, false},
		{"sub $24,%rsp", "\x48\x83\xec\x18", 4, false},
		{"mov %rdi,%rax", "\x48\x89\xf8", 3, false},
	} {
		if length, quick := measure([]byte(try.code)); length != try.length || quick != try.quick {
			t.Errorf("%s: %d bytes, quick %t", try.what, length, quick)
		}
	}
}

// TestSpoilt finds the instructions that the kernel executes wrong at a uprobe. Package torture/sweep found
// them.
func TestSpoilt(t *testing.T) {
	for _, try := range []struct {
		what, code string
		spoilt     bool
	}{
		{"vmovdqu %ymm0,(%rdi)", "\xc5\xfe\x7f\x07", true},
		{"vzeroupper", "\xc5\xf8\x77", true},
		{"vpermq $1,%ymm0,%ymm0", "\xc4\xe3\xfd\x00\xc0\x01", true},
		{"vmovdqu64 (%rdi),%zmm0", "\x62\xf1\xfe\x48\x6f\x07", true},
		{"vpcmov %xmm0,%xmm0,%xmm0,%xmm0", "\x8f\xe8\x78\xa2\xc0\x00", true},
		{"pushfq", "\x9c", true},
		{"pushfw", "\x66\x9c", true},
		{"rex.w pushfq", "\x48\x9c", true},
		{"xchg %rax,%r8", "\x49\x90", true},
		{"xchg %eax,%r8d", "\x41\x90", true},
		{"nop", "\x90", false},
		{"pause", "\xf3\x90", false},
		{"push %r12", "\x41\x54", false},
		{"popfq", "\x9d", false},
		{"movdqu %xmm0,(%rdi)", "\xf3\x0f\x7f\x07", false},
		{"pop (%rax)", "\x8f\x00", false},
		{"push %rbp", "\x55", false},
		{"nopw 0(%rax,%rax)", "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00", false},
		{"nothing", "", false},
	} {
		if got := spoilt([]byte(try.code)); (got != "") != try.spoilt {
			t.Errorf("%s: %q", try.what, got)
		}
	}
}
