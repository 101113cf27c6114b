package gateway

import (
	"fmt"
	"io/fs"
	"net/http"
	"path"
)

var schemaTypes = map[string]string{
	".xsd": typeXML,
	".xml": typeXML,
	".dtd": "application/xml-dtd",
}

// getSchema serves a schema; without a name, the list of all schemas.
func (s *Server) getSchema(x *exchange) error {
	name := x.param("*")
	if name == "" {
		return s.listSchemas(x)
	}
	kind, ok := schemaTypes[path.Ext(name)]
	if !ok || !fs.ValidPath(name) {
		return noSchema(name)
	}
	text, err := fs.ReadFile(s.backend.Schemas(), name)
	if err != nil {
		return noSchema(name)
	}
	sendCompressed(x, kind, text)
	return nil
}

func noSchema(name string) error {
	return NewFault(http.StatusNotFound, fmt.Sprintf("there is no schema %q; GET /schemas/ lists them", name))
}

func (s *Server) listSchemas(x *exchange) error {
	names := []string{}
	err := fs.WalkDir(s.backend.Schemas(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && schemaTypes[path.Ext(name)] != "" {
			names = append(names, "/schemas/"+name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return sendJSON(x, http.StatusOK, names)
}
