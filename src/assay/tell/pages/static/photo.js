// Sends a chosen photo as the body of a request: a form would need a parser of multipart bodies on the server.
document.addEventListener("change", async (event) => {
  const input = event.target;
  const file = input.files && input.files[0];
  if (!file || !input.dataset.photos) return;
  const status = document.getElementById(input.dataset.status);
  status.textContent = "sending the photo …";
  try {
    const answer = await fetch(input.dataset.photos, { method: "POST", body: file });
    const said = answer.ok ? {} : await answer.json();
    status.textContent = answer.ok ? "the photo is here" : "not taken: " + said.error;
  } catch {
    status.textContent = "not sent: there is no connection; choose the photo again";
  }
  input.value = "";
});
