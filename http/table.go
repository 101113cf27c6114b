package gateway

import (
	"encoding/xml"
	"io"
	"net/http"
)

// sendTable answers with a table, in XML unless the caller accepts JSON.
func sendTable[T any](x *exchange, root, row string, rows []T) error {
	x.Header().Set("Vary", "Accept")
	if accepts(x.r, "application/json") {
		return sendJSON(x, http.StatusOK, rows)
	}
	out := takeBuffer()
	defer giveBuffer(out)
	if err := WriteTable(out, root, row, rows); err != nil {
		return err
	}
	sendCompressed(x, typeXML, out.Bytes())
	return nil
}

// WriteTable writes a table as XML, with the given names of its elements. The gateway sends
// tables in this form, and commands print them.
func WriteTable[T any](w io.Writer, root, row string, rows []T) error {
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	start := xml.StartElement{Name: xml.Name{Local: root}}
	if err := encoder.EncodeToken(start); err != nil {
		return err
	}
	for _, r := range rows {
		if err := encoder.EncodeElement(r, xml.StartElement{Name: xml.Name{Local: row}}); err != nil {
			return err
		}
	}
	if err := encoder.EncodeToken(start.End()); err != nil {
		return err
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *Server) getServices(x *exchange) error {
	rows := []Service{}
	for _, t := range s.backend.Services() {
		rows = append(rows, Service{
			Name: t.Name, Kind: t.Kind.String(), Role: t.Role.String(), Support: t.Support.Level.String(), Local: t.Local,
			Prototype: t.Prototype(), Doc: t.Doc,
		})
	}
	return sendTable(x, "services", "service", rows)
}

func (s *Server) getCatalog(x *exchange) error {
	return sendTable(x, "catalog", "metric", s.backend.Catalog())
}
