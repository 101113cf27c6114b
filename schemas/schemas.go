// Package schemas contains the grammars of the gateway's documents: mir.xsd and mir.dtd for
// MIR, sir.xsd and sir.dtd for structure documents, omis.xsd for replies to OMIS requests, gateway.xsd for
// the gateway's extensions, and an OASIS catalog that lists them. They are embedded in the
// program, so that validating a document needs no download.
//
// Every package may import schemas (http serves it under /schemas/, mir/xsd validates with
// it). It imports no other package of this module, and starts no goroutines.
package schemas

import (
	"embed"
	"io/fs"
)

// The schemas refer to no other files: a validator needs neither network nor file system.
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

// Files returns all files by name.
func Files() fs.FS { return files }

// MIR returns the schema of MIR's documents, except sir.
func MIR() []byte { return []byte(mir) }

// SIR returns the schema of structure documents.
func SIR() []byte { return []byte(sir) }

// OMIS returns the schema of replies to OMIS requests.
func OMIS() []byte { return []byte(omis) }

// Gateway returns the schema of the namespace urn:mirador:gateway.
func Gateway() []byte { return []byte(gateway) }
