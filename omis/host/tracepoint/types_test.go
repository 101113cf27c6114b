//go:build linux

package tracepoint

import (
	"runtime"
	"testing"
)

// TestKernelTypes checks that callers share the types, and that the types are freed after the last one.
func TestKernelTypes(t *testing.T) {
	types := KernelTypes()
	if KernelTypes() != types {
		t.Error("two callers at the same time do not share the types")
	}
	runtime.KeepAlive(types)
	runtime.GC()
	if kernelTypes.Value() != nil {
		t.Error("the types are in memory although no caller has them")
	}
}
