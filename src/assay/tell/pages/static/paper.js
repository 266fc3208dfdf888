// Puts the address of the page on paper, in letters and as a QR code: who holds the sheet opens the page by phone.
const paper = document.getElementById("paper");
const address = paper.dataset.address || location.href;
const code = qrcode(0, "M");
code.addData(address);
code.make();
paper.innerHTML = code.createSvgTag({ cellSize: 3, margin: 12, scalable: true });
const line = document.createElement("figcaption");
line.textContent = address;
paper.append(line);
