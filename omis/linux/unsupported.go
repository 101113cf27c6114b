//go:build !(linux && amd64)

package linux

// Node cannot be built here; the name of the missing thing says why.
type Node = the_monitor_observes_processes_on_linux_x86_64_only
