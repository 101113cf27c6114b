//go:build !(linux && amd64)

package inline

// Placer cannot be built here; the name of the undefined type says why.
type Placer = programs_are_placed_in_code_on_linux_x86_64_only
