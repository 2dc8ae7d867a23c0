// Both Perspective clients of npm, as published; only the host of their fixed URL is replaced.
const service = process.argv[2];
const point = (axios) => {
  axios.interceptors.request.use((config) => {
    config.url = config.url.replace("https://commentanalyzer.googleapis.com", service);
    config.proxy = false;
    return config;
  });
};
const find = (name, package_) => require(require.resolve(name, { paths: [require.resolve(package_)] }));
point(find("axios", "perspective-api-client"));
const other = find("axios", "@conversationai/perspectiveapi-js-client");
point(other.default || other);

const Perspective = require("perspective-api-client");
const { Client } = require("@conversationai/perspectiveapi-js-client");
const text = "What kind of idiot name is foo? Sorry, I like your name.";

async function main() {
  const perspective = new Perspective({ apiKey: "any key" });
  const plain = await perspective.analyze(text);
  const full = await perspective.analyze({
    comment: { text },
    languages: ["en"],
    spanAnnotations: true,
    requestedAttributes: { TOXICITY: { scoreThreshold: 0 } },
  });
  let refused = null;
  try {
    await perspective.analyze(text, { attributes: ["toxicity", "flirtation"] });
  } catch (error) {
    refused = [error.name, error.message, error.response.status];
  }
  const scores = await new Client("any key").getScores(text, { attributes: ["TOXICITY"] });
  let empty = null;
  try {
    await new Client("any key").getScores(text);
  } catch (error) {
    empty = String(error.message);
  }
  console.log(JSON.stringify({ plain, full, refused, scores, empty }));
}
main();
