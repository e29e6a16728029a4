#!/bin/sh
# Makes the documents of these tests by programs that others wrote. The results are
# committed; run it only to renew them. On Debian it needs
#
#	apt-get install --no-install-recommends pandoc libreoffice-writer-nogui \
#		libreoffice-calc-nogui libreoffice-impress-nogui weasyprint \
#		fonts-dejavu-core fonts-liberation
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

office() { # office NAME FORMAT FILE [FILTER]
	soffice -env:UserInstallation="file://$work/profile" --headless --infilter="${4-}" \
		--convert-to "$2" --outdir "$work/out" "$3" >/dev/null
	mv "$work/out/"* "$1"
}

pandoc report.md -o pandoc.docx
pandoc report.md --standalone --css report.css -o "$work/report.html"
cp report.css "$work"
weasyprint "$work/report.html" weasyprint.pdf

pandoc report.md -o "$work/report.odt"
office libreoffice.docx "docx:Office Open XML Text" "$work/report.odt"
office libreoffice.odt odt pandoc.docx
office libreoffice.rtf rtf pandoc.docx
pandoc report.md --standalone -o pandoc.rtf
pandoc report.md -o pandoc.epub
pandoc report.md -o pandoc.ipynb
pandoc report.md -o pandoc.pptx
office libreoffice.odp odp pandoc.pptx
office libreoffice.pptx pptx libreoffice.odp
office libreoffice.xlsx xlsx figures.csv CSV:44,34,76,1
office libreoffice.ods ods figures.csv CSV:44,34,76,1
office libreoffice.pdf 'pdf:writer_pdf_Export:{"ExportBookmarks":{"type":"boolean","value":"true"}}' pandoc.docx
office encrypted.pdf 'pdf:writer_pdf_Export:{"EncryptFile":{"type":"boolean","value":"true"},"DocumentOpenPassword":{"type":"string","value":"secret"}}' pandoc.docx
ls -l
