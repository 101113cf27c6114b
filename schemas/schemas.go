// Package schemas holds the grammars of the documents that cross the gateway's
// border: mir.xsd and mir.dtd for MIR, sir.xsd for structure documents, omis.xsd for
// the replies to OMIS requests, gateway.xsd for the gateway's own additions, and an OASIS catalog that names
// them. They are compiled into the program, so that nothing is fetched to
// validate a document.
//
// Every package may import schemas (http serves it under /schemas/, mir/xsd
// validates by it); it imports nothing of ours, and starts no goroutine.
package schemas

import (
	"embed"
	"io/fs"
)

// The schemas refer to no other file: a validator that reads one of them needs
// neither network nor file system.
var (
	//go:embed *.xsd *.dtd catalog.xml
	files embed.FS
	//go:embed mir.xsd
	mir string
	//go:embed sir.xsd
	sir string
	//go:embed omis.xsd
	omis string
	//go:embed gateway.xsd
	gateway string
)

// Files are all of them, by their names.
func Files() fs.FS { return files }

// MIR is the schema of MIR's documents, but for sir.
func MIR() []byte { return []byte(mir) }

// SIR is the schema of structure documents.
func SIR() []byte { return []byte(sir) }

// OMIS is the schema of replies to OMIS requests.
func OMIS() []byte { return []byte(omis) }

// Gateway is the schema of the namespace urn:mirador:gateway.
func Gateway() []byte { return []byte(gateway) }
