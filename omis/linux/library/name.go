package library

import (
	"path/filepath"
	"strings"
)

// name is a parsed request for a function: [MODULE:]FUNCTION[@VERSION].
type name struct {
	module, function, version string // "" means any
}

// parseName parses "libm.so.6:sin@GLIBC_2.2.5". The colons of "std::terminate" belong to
// the function.
func parseName(text string) name {
	var n name
	for i := 0; i < len(text); i++ {
		if text[i] != ':' {
			continue
		}
		if strings.HasPrefix(text[i:], "::") {
			i++
			continue
		}
		n.module, text = text[:i], text[i+1:]
		break
	}
	n.function, n.version, _ = strings.Cut(text, "@")
	n.version = strings.TrimPrefix(n.version, "@")
	return n
}

// among returns the modules that a name may mean, by their file names or sonames.
func (n name) among(modules []module) []module {
	if n.module == "" {
		return modules
	}
	var named []module
	for _, m := range modules {
		if filepath.Base(m.Path) == n.module || m.soname == n.module {
			named = append(named, m)
		}
	}
	return named
}
