package gateway

import (
	"encoding/xml"
	"net/http"
)

// sendTable answers with a table: XML unless the caller asked for JSON.
func sendTable[T any](x *exchange, root, row string, rows []T) error {
	x.Header().Set("Vary", "Accept")
	if accepts(x.r, "application/json") {
		return sendJSON(x, http.StatusOK, rows)
	}
	out := takeBuffer()
	defer giveBuffer(out)
	encoder := xml.NewEncoder(out)
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
	out.WriteByte('\n')
	sendCompressed(x, typeXML, out.Bytes())
	return nil
}

func (s *Server) getCatalog(x *exchange) error {
	return sendTable(x, "catalog", "metric", s.backend.Catalog())
}
