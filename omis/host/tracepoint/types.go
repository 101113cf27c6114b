//go:build linux

package tracepoint

import (
	"sync"
	"weak"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

var kernelTypes struct {
	sync.Mutex
	weak.Pointer[btf.Cache]
}

// KernelTypes returns the types of the running kernel. To decode them takes longer than to load a program
// that refers to them, so loads that follow each other share them. They take megabytes, so the garbage
// collector frees them when no caller has the cache any more. Callers must not change the types.
func KernelTypes() *btf.Cache {
	kernelTypes.Lock()
	defer kernelTypes.Unlock()
	types := kernelTypes.Value()
	if types == nil {
		types = btf.NewCache()
		kernelTypes.Pointer = weak.Make(types)
	}
	return types
}

// Load loads a program whose arguments have types of the kernel.
func Load(spec *ebpf.ProgramSpec) (*ebpf.Program, error) {
	loaded, err := ebpf.NewCollectionWithOptions(&ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{spec.Name: spec}},
		ebpf.CollectionOptions{Cache: KernelTypes()})
	if err != nil {
		return nil, err
	}
	return loaded.DetachProgram(spec.Name), nil
}
